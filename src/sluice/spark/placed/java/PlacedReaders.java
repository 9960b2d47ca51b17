package sluice.placed;

import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;

/** The driver asks a factory about partitions it has planned; tasks get the factory of the source itself. */
public final class PlacedReaders implements PartitionReaderFactory {
  private final PartitionReaderFactory inner;

  PlacedReaders(PartitionReaderFactory inner) {
    this.inner = inner;
  }

  public PartitionReader createReader(InputPartition partition) {
    return inner.createReader(bare(partition));
  }

  public PartitionReader createColumnarReader(InputPartition partition) {
    return inner.createColumnarReader(bare(partition));
  }

  public boolean supportColumnarReads(InputPartition partition) {
    return inner.supportColumnarReads(bare(partition));
  }

  public Object writeReplace() {
    return inner;
  }

  private static InputPartition bare(InputPartition partition) {
    return partition instanceof PlacedPartition ? ((PlacedPartition) partition).inner : partition;
  }
}
