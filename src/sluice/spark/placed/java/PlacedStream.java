package sluice.placed;

import java.util.Collections;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.AcceptsLatestSeenOffset;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;

/**
 * A stream whose partitions have a place.
 *
 * A class and no dynamic proxy: a proxy would wrap the interrupt that ends a query, which Scala does not declare, and
 * a query that was stopped would look like one that failed.
 */
class PlacedStream implements MicroBatchStream, AcceptsLatestSeenOffset, ReportsSourceMetrics {
  final MicroBatchStream inner;
  private final PlanFile plan;

  PlacedStream(MicroBatchStream inner, PlanFile plan) {
    this.inner = inner;
    this.plan = plan;
  }

  /** With the same optional abilities as the stream it stands for. */
  static MicroBatchStream around(MicroBatchStream inner, PlanFile plan) {
    if (inner instanceof SupportsTriggerAvailableNow) {
      return new Bounded(inner, plan);
    }
    if (inner instanceof SupportsAdmissionControl) {
      return new Limited(inner, plan);
    }
    return new PlacedStream(inner, plan);
  }

  public InputPartition[] planInputPartitions(Offset start, Offset end) {
    return plan.place(inner.planInputPartitions(start, end));
  }

  public PartitionReaderFactory createReaderFactory() {
    return new PlacedReaders(inner.createReaderFactory());
  }

  public Offset latestOffset() {
    return inner.latestOffset();
  }

  public Offset initialOffset() {
    return inner.initialOffset();
  }

  public Offset deserializeOffset(String json) {
    return inner.deserializeOffset(json);
  }

  public void commit(Offset end) {
    inner.commit(end);
  }

  public void stop() {
    inner.stop();
  }

  public void setLatestSeenOffset(Offset offset) {
    if (inner instanceof AcceptsLatestSeenOffset) {
      ((AcceptsLatestSeenOffset) inner).setLatestSeenOffset(offset);
    }
  }

  public Map metrics(Optional latest) {
    if (inner instanceof ReportsSourceMetrics) {
      return ((ReportsSourceMetrics) inner).metrics(latest);
    }
    return Collections.emptyMap();
  }

  public String toString() {
    return inner.toString();
  }

  static class Limited extends PlacedStream implements SupportsAdmissionControl {
    Limited(MicroBatchStream inner, PlanFile plan) {
      super(inner, plan);
    }

    public ReadLimit getDefaultReadLimit() {
      return ((SupportsAdmissionControl) inner).getDefaultReadLimit();
    }

    public Offset latestOffset(Offset start, ReadLimit limit) {
      return (Offset) ((SupportsAdmissionControl) inner).latestOffset(start, limit);
    }

    public Offset reportLatestOffset() {
      return (Offset) ((SupportsAdmissionControl) inner).reportLatestOffset();
    }
  }

  static final class Bounded extends Limited implements SupportsTriggerAvailableNow {
    Bounded(MicroBatchStream inner, PlanFile plan) {
      super(inner, plan);
    }

    public void prepareForTriggerAvailableNow() {
      ((SupportsTriggerAvailableNow) inner).prepareForTriggerAvailableNow();
    }
  }
}
