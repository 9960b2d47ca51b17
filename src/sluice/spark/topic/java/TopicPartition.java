package sluice.topic;

import org.apache.spark.sql.connector.read.InputPartition;

/**
 * What one task reads: {"slices": [{"path", "records", "size_bytes", "crc32", "skip", "take"}], "slot_rate",
 * "head_start_s", "columns"}. Columns that are not named are handed out as nulls; null names all.
 */
public final class TopicPartition implements InputPartition {
  final String json;

  TopicPartition(String json) {
    this.json = json;
  }
}
