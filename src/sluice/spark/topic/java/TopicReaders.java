package sluice.topic;

import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;

public final class TopicReaders implements PartitionReaderFactory {
  private final String schema;

  TopicReaders(String schema) {
    this.schema = schema;
  }

  public PartitionReader createReader(InputPartition partition) {
    throw new UnsupportedOperationException("topics are read by columns");
  }

  public PartitionReader createColumnarReader(InputPartition partition) {
    try {
      return new TopicReader(((TopicPartition) partition).json, schema);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  public boolean supportColumnarReads(InputPartition partition) {
    return true;
  }
}
