package sluice.topic;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapred.FileSplit;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.apache.parquet.HadoopReadOptions;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Consecutive records of one segment by Spark's own Parquet reader, which is given only the row groups they are in. */
final class SliceReader {
  private final VectorizedParquetRecordReader reader;
  private long skip;
  private long left;

  SliceReader(JsonNode slice, Configuration settings, int rowsPerBatch) throws IOException {
    skip = ((JsonNode) slice.get("skip")).asLong();
    left = ((JsonNode) slice.get("take")).asLong();
    reader = new VectorizedParquetRecordReader(null, "CORRECTED", "UTC", "CORRECTED", "UTC", false, rowsPerBatch);
    Path path = new Path(new File(((JsonNode) slice.get("path")).asText()).toURI());
    Segment segment = Segment.open(slice);
    try {
      long size = ((JsonNode) slice.get("size_bytes")).asLong();
      HadoopInputFile input = HadoopInputFile.fromStatus(new FileStatus(size, false, 1, size, 0, path), settings);
      ParquetMetadata footer =
          ParquetFileReader.readFooter(input, HadoopReadOptions.builder(settings, path).build(), segment);
      reader.initialize(
          new FileSplit(path, 0L, size, new String[0]),
          new TaskAttemptContextImpl(settings, new TaskAttemptID()),
          scala.Option.apply(input),
          scala.Option.apply(segment),
          scala.Option.apply(new ParquetMetadata(footer.getFileMetaData(), needed(footer.getBlocks()))));
      reader.enableReturningBatches();
      segment = null;
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
      throw new IOException(stopped);
    } finally {
      if (segment != null) {
        segment.close();
      }
    }
  }

  /** What Spark's reader looks up: the columns by their exact names, nothing guessed. */
  static Configuration settings(String schema) {
    Configuration settings = new Configuration(false);
    settings.set(
        "parquet.read.support.class", "org.apache.spark.sql.execution.datasources.parquet.ParquetReadSupport");
    settings.set("org.apache.spark.sql.parquet.row.requested_schema", schema);
    settings.set("spark.sql.caseSensitive", "true");
    settings.set("spark.sql.parquet.binaryAsString", "false");
    settings.set("spark.sql.parquet.int96AsTimestamp", "true");
    settings.set("spark.sql.parquet.inferTimestampNTZ.enabled", "true");
    settings.set("spark.sql.legacy.parquet.nanosAsLong", "false");
    return settings;
  }

  /** Null after the last one. The batch is valid until the next call. */
  ColumnarBatch next() throws IOException {
    while (left > 0 && reader.nextKeyValue()) {
      ColumnarBatch batch = (ColumnarBatch) reader.getCurrentValue();
      int rows = batch.numRows();
      if (skip >= rows) {
        skip -= rows;
        continue;
      }
      int from = (int) skip;
      int count = (int) Math.min(left, (long) (rows - from));
      skip = 0;
      left -= count;
      return part(batch, from, count);
    }
    if (left > 0) {
      throw new IOException("segment ends " + left + " records early");
    }
    return null;
  }

  void close() throws IOException {
    reader.close();
  }

  private List needed(List blocks) {
    List found = new ArrayList();
    long first = 0;
    long from = skip;
    for (int i = 0; i < blocks.size(); i++) {
      BlockMetaData block = (BlockMetaData) blocks.get(i);
      if (first + block.getRowCount() <= from) {
        skip -= block.getRowCount();
      } else if (first < from + left) {
        found.add(block);
      }
      first += block.getRowCount();
    }
    return found;
  }

  private static ColumnarBatch part(ColumnarBatch batch, int from, int count) {
    if (from == 0) {
      batch.setNumRows(count);
      return batch;
    }
    ColumnVector[] columns = new ColumnVector[batch.numCols()];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = new LaterRows(batch.column(i), from);
    }
    return new ColumnarBatch(columns, count);
  }
}
