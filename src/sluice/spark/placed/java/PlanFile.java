package sluice.placed;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import org.apache.spark.sql.connector.read.InputPartition;

/** Where the partitions of one operator are to be read: {"places": ["executor_HOST_ID", ...]}, replaced atomically. */
final class PlanFile {
  private final Path path;
  private String[] places = new String[0];

  PlanFile(String path) {
    this.path = Paths.get(path, new String[0]);
  }

  /** Partition i goes to place i modulo their number, so that two inputs of one operator go the same way. */
  InputPartition[] place(InputPartition[] partitions) {
    String[] now = read();
    if (now.length == 0) {
      return partitions;
    }
    InputPartition[] placed = new InputPartition[partitions.length];
    for (int i = 0; i < partitions.length; i++) {
      placed[i] = new PlacedPartition(partitions[i], now[i % now.length]);
    }
    return placed;
  }

  /** A plan that cannot be read must not stop the stream: the last one that could holds. */
  private String[] read() {
    try {
      JsonNode found = (JsonNode) new ObjectMapper().readTree(Files.readAllBytes(path)).get("places");
      String[] all = new String[found.size()];
      for (int i = 0; i < all.length; i++) {
        all[i] = ((JsonNode) found.get(i)).asText();
      }
      places = all;
    } catch (IOException error) {
      System.err.println("sluice: plan of places not read: " + error);
    }
    return places;
  }
}
