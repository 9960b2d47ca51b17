package sluice.topic;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.UUID;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** One input of one run of a query. It knows nothing but its name: Python holds what it has to remember. */
final class TopicStream implements MicroBatchStream, SupportsAdmissionControl, SupportsTriggerAvailableNow {
  private final String name = UUID.randomUUID().toString();
  private final String path;
  private final StructType schema;

  TopicStream(CaseInsensitiveStringMap options, StructType schema) {
    this.path = options.get("path");
    this.schema = schema;
    ObjectNode opening = call("open");
    opening.put("path", path);
    opening.put("name", options.get("name"));
    opening.put("consumer", options.get("consumer"));
    opening.put("control", options.get("control"));
    Planner.ask(opening);
  }

  public Offset initialOffset() {
    return new TopicOffset(Planner.ask(call("first")).asText());
  }

  public ReadLimit getDefaultReadLimit() {
    return new AsControlled();
  }

  public Offset latestOffset() {
    throw new UnsupportedOperationException("a topic is asked with the offset to begin at");
  }

  public Offset latestOffset(Offset start, ReadLimit limit) {
    ObjectNode request = call("next");
    request.put("start", start.json());
    request.put("limited", limit instanceof AsControlled);
    return new TopicOffset(Planner.ask(request).asText());
  }

  public Offset reportLatestOffset() {
    return new TopicOffset(Planner.ask(call("newest")).asText());
  }

  public void prepareForTriggerAvailableNow() {
    Planner.ask(call("stop_at_newest"));
  }

  public InputPartition[] planInputPartitions(Offset start, Offset end) {
    ObjectNode request = call("plan");
    request.put("start", start.json());
    request.put("end", end.json());
    JsonNode planned = Planner.ask(request);
    InputPartition[] partitions = new InputPartition[planned.size()];
    for (int i = 0; i < partitions.length; i++) {
      partitions[i] = new TopicPartition(((JsonNode) planned.get(i)).toString());
    }
    return partitions;
  }

  public PartitionReaderFactory createReaderFactory() {
    return new TopicReaders(schema.json());
  }

  public Offset deserializeOffset(String json) {
    return new TopicOffset(json);
  }

  public void commit(Offset end) {}

  public void stop() {
    try {
      Planner.ask(call("close"));
    } catch (RuntimeException ended) {
      // the Python process may be gone by now, and its notes with it
    }
  }

  public String toString() {
    return "topic " + path;
  }

  private ObjectNode call(String method) {
    ObjectNode request = Planner.JSON.createObjectNode();
    request.put("stream", name);
    request.put("call", method);
    return request;
  }

  /** The real limit is in the control file and changes; Spark asks for the default one once, at the start. */
  static final class AsControlled implements ReadLimit {}

  static final class TopicOffset extends Offset {
    private final String json;

    TopicOffset(String json) {
      this.json = json;
    }

    public String json() {
      return json;
    }
  }
}
