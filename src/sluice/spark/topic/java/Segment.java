package sluice.topic;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.util.zip.CRC32;
import org.apache.parquet.io.SeekableInputStream;

/** A data file of a topic, handed out only after the whole of it was found to be what was committed. */
final class Segment extends SeekableInputStream {
  private static final int CHUNK_BYTES = 1 << 18;

  private final RandomAccessFile file;

  private Segment(RandomAccessFile file) {
    this.file = file;
  }

  static Segment open(JsonNode slice) throws IOException {
    String path = ((JsonNode) slice.get("path")).asText();
    RandomAccessFile file;
    try {
      file = new RandomAccessFile(path, "r");
    } catch (FileNotFoundException missing) {
      String records = ((JsonNode) slice.get("records")).asText();
      throw new CorruptTopicError(path + ": segment is missing, " + records + " records with it");
    }
    try {
      long committed = ((JsonNode) slice.get("size_bytes")).asLong();
      if (file.length() != committed) {
        throw new CorruptTopicError(
            path + ": torn segment, " + file.length() + " bytes where " + committed + " were committed");
      }
      if (checksum(file) != ((JsonNode) slice.get("crc32")).asLong()) {
        throw new CorruptTopicError(path + ": altered segment, its checksum does not match the committed one");
      }
      file.seek(0);
      Segment checked = new Segment(file);
      file = null;
      return checked;
    } finally {
      if (file != null) {
        file.close();
      }
    }
  }

  private static long checksum(RandomAccessFile file) throws IOException {
    CRC32 sum = new CRC32();
    byte[] chunk = new byte[CHUNK_BYTES];
    for (int count = file.read(chunk); count >= 0; count = file.read(chunk)) {
      sum.update(chunk, 0, count);
    }
    return sum.getValue();
  }

  public long getPos() throws IOException {
    return file.getFilePointer();
  }

  public void seek(long position) throws IOException {
    file.seek(position);
  }

  public int read() throws IOException {
    return file.read();
  }

  public int read(byte[] into, int first, int count) throws IOException {
    return file.read(into, first, count);
  }

  public void readFully(byte[] into) throws IOException {
    file.readFully(into);
  }

  public void readFully(byte[] into, int first, int count) throws IOException {
    file.readFully(into, first, count);
  }

  public int read(ByteBuffer into) throws IOException {
    return file.getChannel().read(into);
  }

  public void readFully(ByteBuffer into) throws IOException {
    if (into.hasArray()) {
      file.readFully(into.array(), into.arrayOffset() + into.position(), into.remaining());
      into.position(into.limit());
      return;
    }
    while (into.hasRemaining()) {
      if (read(into) < 0) {
        throw new EOFException("segment ends early");
      }
    }
  }

  public void close() throws IOException {
    file.close();
  }
}
