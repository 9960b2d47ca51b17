package sluice.topic;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

final class TopicTable implements SupportsRead, SupportsWrite {
  final StructType schema;
  final CaseInsensitiveStringMap options;

  TopicTable(StructType schema, CaseInsensitiveStringMap options) {
    this.schema = schema;
    this.options = options;
  }

  public String name() {
    return "topic " + options.get("path");
  }

  public StructType schema() {
    return schema;
  }

  public Set capabilities() {
    return new HashSet(
        Arrays.asList(
            new Object[] {
              TableCapability.MICRO_BATCH_READ,
              TableCapability.BATCH_WRITE,
              TableCapability.STREAMING_WRITE,
              TableCapability.ACCEPT_ANY_SCHEMA
            }));
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap ignored) {
    return new TopicScan(this);
  }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new TopicWrite(info);
  }

  static final class TopicScan implements ScanBuilder, Scan {
    private final TopicTable table;

    TopicScan(TopicTable table) {
      this.table = table;
    }

    public Scan build() {
      return this;
    }

    public StructType readSchema() {
      return table.schema;
    }

    public String description() {
      return table.name();
    }

    public MicroBatchStream toMicroBatchStream(String checkpoint) {
      return new TopicStream(table.options, table.schema);
    }
  }
}
