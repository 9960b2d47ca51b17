package sluice.placed;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.connector.read.InputPartition;

/**
 * Where one operator's tasks are to run, read when a batch begins: {"places": [...], "workers": [...], "state": {...}}.
 *
 * A place is executor_HOST_ID. The file is replaced atomically. One plan holds for the whole batch, its state partitions
 * included: no task of the batch before can change what the scheduler knows of them any more.
 */
final class PlanFile {
  private final Path path;
  private JsonNode plan = null;

  PlanFile(String path) {
    this.path = Paths.get(path, new String[0]);
  }

  /** Partition i goes to place i modulo their number, so that two inputs of one operator go the same way. */
  InputPartition[] place(InputPartition[] partitions) {
    read();
    if (plan == null) {
      return partitions;
    }
    String[] workers = texts((JsonNode) plan.get("workers"));
    JsonNode state = (JsonNode) plan.get("state");
    if (state != null) {
      steer(state, workers);
    }
    String[] places = Living.instead(texts((JsonNode) plan.get("places")), workers);
    if (places.length == 0) {
      return partitions;
    }
    InputPartition[] placed = new InputPartition[partitions.length];
    for (int i = 0; i < partitions.length; i++) {
      placed[i] = new PlacedPartition(partitions[i], places[i % places.length]);
    }
    return placed;
  }

  private static void steer(JsonNode state, String[] workers) {
    SparkContext context = SparkContext.getOrCreate();
    String run = context.getLocalProperty("spark.jobGroup.id");
    String batch = context.getLocalProperty("streaming.sql.batchId");
    if (run != null && batch != null) {
      StatePlan.begin(run, Long.parseLong(batch), state, workers);
    }
  }

  /** A plan that cannot be read must not stop the stream: the last one that could holds. */
  private void read() {
    try {
      plan = (JsonNode) new ObjectMapper().readTree(Files.readAllBytes(path));
    } catch (IOException error) {
      System.err.println("sluice: plan of places not read: " + error);
    }
  }

  static String[] texts(JsonNode found) {
    String[] all = new String[found.size()];
    for (int i = 0; i < all.length; i++) {
      all[i] = ((JsonNode) found.get(i)).asText();
    }
    return all;
  }
}
