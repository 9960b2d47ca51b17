package sluice.topic;

import java.io.BufferedOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.util.zip.CRC32;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.api.WriteSupport;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.io.OutputFile;
import org.apache.parquet.io.PositionOutputStream;
import org.apache.spark.TaskContext;
import org.apache.spark.executor.OutputMetrics;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport;

/** One file of one task, checksummed while it is written; a task without records writes none. */
final class SegmentWriter implements DataWriter {
  /** As in segments.py: a reader of a part of a file decodes whole row groups. */
  private static final int RECORDS_PER_ROW_GROUP = 65536;

  private final String segments;
  private final String file;
  private final String schema;
  private ParquetWriter writer = null;
  private Output output = null;
  private long records = 0;

  SegmentWriter(String segments, String file, String schema) {
    this.segments = segments;
    this.file = file;
    this.schema = schema;
  }

  public void write(Object row) throws IOException {
    if (writer == null) {
      open();
    }
    writer.write(row);
    records++;
  }

  public WriterCommitMessage commit() throws IOException {
    if (writer == null) {
      return new Written(file, 0, 0, 0);
    }
    writer.close();
    writer = null;
    TaskContext task = TaskContext.get();
    if (task != null) {
      OutputMetrics metrics = task.taskMetrics().outputMetrics();
      metrics.setRecordsWritten(records);
      metrics.setBytesWritten(output.position);
    }
    return new Written(file, records, output.position, output.sum.getValue());
  }

  public void abort() throws IOException {
    close();
    if (output != null) {
      new File(segments, file).delete();
    }
  }

  public void close() throws IOException {
    if (output != null) {
      output.close();
    }
  }

  private void open() throws IOException {
    File path = new File(segments, file);
    path.getParentFile().mkdirs();
    output = new Output(new BufferedOutputStream(new FileOutputStream(path), 1 << 16));
    Configuration settings = new Configuration(false);
    settings.set("org.apache.spark.sql.parquet.row.attributes", schema);
    settings.set("spark.sql.parquet.writeLegacyFormat", "false");
    settings.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS");
    settings.set("spark.sql.parquet.fieldId.write.enabled", "false");
    settings.set("spark.sql.parquet.variant.annotateLogicalType.enabled", "false");
    ParquetWriter.Builder builder = new Builder(output);
    builder.withConf(settings);
    builder.withCompressionCodec(CompressionCodecName.UNCOMPRESSED);
    builder.withRowGroupRowCountLimit(RECORDS_PER_ROW_GROUP);
    // nobody looks at statistics, and the file has a checksum of its own
    builder.withStatisticsEnabled(false);
    builder.withSizeStatisticsEnabled(false);
    builder.withPageWriteChecksumEnabled(false);
    writer = builder.build();
  }

  /** What the commit has to remember of a file. */
  public static final class Written implements WriterCommitMessage {
    final String file;
    final long records;
    final long sizeBytes;
    final long crc32;

    Written(String file, long records, long sizeBytes, long crc32) {
      this.file = file;
      this.records = records;
      this.sizeBytes = sizeBytes;
      this.crc32 = crc32;
    }
  }

  static final class Builder extends ParquetWriter.Builder {
    Builder(OutputFile file) {
      super(file);
    }

    protected ParquetWriter.Builder self() {
      return this;
    }

    protected WriteSupport getWriteSupport(Configuration settings) {
      return new ParquetWriteSupport();
    }
  }

  static final class Output extends PositionOutputStream implements OutputFile {
    final CRC32 sum = new CRC32();
    private final OutputStream file;
    long position = 0;

    Output(OutputStream file) {
      this.file = file;
    }

    public long getPos() {
      return position;
    }

    public void write(int value) throws IOException {
      file.write(value);
      sum.update(value);
      position++;
    }

    public void write(byte[] bytes, int first, int count) throws IOException {
      file.write(bytes, first, count);
      sum.update(bytes, first, count);
      position += count;
    }

    public void flush() throws IOException {
      file.flush();
    }

    public void close() throws IOException {
      file.close();
    }

    public PositionOutputStream create(long blockSize) {
      return this;
    }

    public PositionOutputStream createOrOverwrite(long blockSize) {
      return this;
    }

    public boolean supportsBlockSize() {
      return false;
    }

    public long defaultBlockSize() {
      return 0;
    }
  }
}
