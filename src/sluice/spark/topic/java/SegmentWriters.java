package sluice.topic;

import java.io.UnsupportedEncodingException;
import java.net.URLEncoder;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;

public final class SegmentWriters implements StreamingDataWriterFactory, DataWriterFactory {
  private final String topic;
  private final String producer;
  private final long batch;
  private final String attempt;
  private final String schema;

  SegmentWriters(String topic, String producer, long batch, String attempt, String schema) {
    this.topic = topic;
    this.producer = producer;
    this.batch = batch;
    this.attempt = attempt;
    this.schema = schema;
  }

  public DataWriter createWriter(int partition, long task) {
    return createWriter(partition, task, batch);
  }

  public DataWriter createWriter(int partition, long task, long batch) {
    String folder = folder(producer, batch, attempt);
    return new SegmentWriter(topic + "/segments", folder + "/part-" + partition + "-" + task + ".parquet", schema);
  }

  /** As Python names the folder of an attempt. */
  static String folder(String producer, long batch, String attempt) {
    try {
      String quoted = URLEncoder.encode(producer, "UTF-8").replace("+", "%20").replace("*", "%2A").replace("%7E", "~");
      return quoted + "@" + batch + "@" + attempt;
    } catch (UnsupportedEncodingException never) {
      throw new IllegalStateException(never);
    }
  }
}
