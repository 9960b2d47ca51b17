package sluice.topic;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.UUID;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** What a batch puts out is appended, in every output mode. Its tasks write segments, Python commits them as one. */
final class TopicWrite
    implements SupportsTruncate, SupportsStreamingUpdateAsAppend, Write, StreamingWrite, BatchWrite {
  private final StructType schema;
  private final CaseInsensitiveStringMap options;
  private final String attempt = UUID.randomUUID().toString().replace("-", "");

  TopicWrite(LogicalWriteInfo info) {
    schema = (StructType) info.schema().asNullable();
    options = info.options();
  }

  public WriteBuilder truncate() {
    return this;
  }

  public Write build() {
    return this;
  }

  public StreamingWrite toStreaming() {
    return this;
  }

  public BatchWrite toBatch() {
    return this;
  }

  public boolean useCommitCoordinator() {
    return false;
  }

  public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) {
    return writers();
  }

  public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
    return writers();
  }

  public void commit(WriterCommitMessage[] messages) {
    commit(batch(), messages);
  }

  public void abort(WriterCommitMessage[] messages) {}

  public void commit(long batch, WriterCommitMessage[] messages) {
    ObjectNode request = Planner.JSON.createObjectNode();
    request.put("call", "commit");
    request.put("path", options.get("path"));
    request.put("producer", options.get("producer"));
    request.put("batch_id", batch);
    request.put("folder", SegmentWriters.folder(options.get("producer"), batch, attempt));
    ArrayNode segments = request.putArray("segments");
    for (int i = 0; i < messages.length; i++) {
      SegmentWriter.Written written = (SegmentWriter.Written) messages[i];
      if (written.records > 0) {
        ObjectNode segment = segments.addObject();
        segment.put("file", written.file);
        segment.put("records", written.records);
        segment.put("size_bytes", written.sizeBytes);
        segment.put("crc32", written.crc32);
      }
    }
    Planner.ask(request);
  }

  /** What was written stays until the topic is swept. */
  public void abort(long batch, WriterCommitMessage[] messages) {}

  private SegmentWriters writers() {
    return new SegmentWriters(options.get("path"), options.get("producer"), batch(), attempt, schema.json());
  }

  private long batch() {
    return options.getLong("batch", -1L);
  }
}
