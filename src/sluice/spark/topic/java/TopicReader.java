package sluice.topic;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Reads the slices of one partition one after the other, as fast as its slot is. */
final class TopicReader implements PartitionReader {
  private static final int MOST_ROWS_PER_BATCH = 4096;

  private final JsonNode slices;
  private final Columns columns;
  private final Configuration settings;
  private final Pace pace;
  private final int rowsPerBatch;
  private int nextSlice = 0;
  private SliceReader slice = null;
  private ColumnarBatch batch = null;

  TopicReader(String partition, String schema) throws IOException {
    JsonNode plan = Planner.JSON.readTree(partition);
    slices = (JsonNode) plan.get("slices");
    columns = new Columns(schema, (JsonNode) plan.get("columns"));
    settings = SliceReader.settings(columns.read.json());
    pace = new Pace((JsonNode) plan.get("slot_rate"), ((JsonNode) plan.get("head_start_s")).asDouble());
    rowsPerBatch = pace.portion(MOST_ROWS_PER_BATCH);
  }

  public boolean next() throws IOException {
    while (true) {
      if (slice == null) {
        if (nextSlice == slices.size()) {
          return false;
        }
        slice = new SliceReader((JsonNode) slices.get(nextSlice++), settings, rowsPerBatch);
      }
      batch = columns.complete(slice.next());
      if (batch != null) {
        pace.await(batch.numRows());
        return true;
      }
      close();
    }
  }

  public Object get() {
    return batch;
  }

  public void close() throws IOException {
    if (slice != null) {
      slice.close();
      slice = null;
    }
  }
}
