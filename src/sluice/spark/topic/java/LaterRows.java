package sluice.topic;

import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** A column without its first rows; the column itself belongs to whoever made it. */
final class LaterRows extends ColumnVector {
  private final ColumnVector all;
  private final int first;

  LaterRows(ColumnVector all, int first) {
    super(all.dataType());
    this.all = all;
    this.first = first;
  }

  public void close() {}

  public void closeIfFreeable() {}

  public boolean hasNull() {
    return all.hasNull();
  }

  public int numNulls() {
    return all.numNulls();
  }

  public boolean isNullAt(int row) {
    return all.isNullAt(first + row);
  }

  public boolean getBoolean(int row) {
    return all.getBoolean(first + row);
  }

  public byte getByte(int row) {
    return all.getByte(first + row);
  }

  public short getShort(int row) {
    return all.getShort(first + row);
  }

  public int getInt(int row) {
    return all.getInt(first + row);
  }

  public long getLong(int row) {
    return all.getLong(first + row);
  }

  public float getFloat(int row) {
    return all.getFloat(first + row);
  }

  public double getDouble(int row) {
    return all.getDouble(first + row);
  }

  public ColumnarArray getArray(int row) {
    return all.getArray(first + row);
  }

  public ColumnarMap getMap(int row) {
    return all.getMap(first + row);
  }

  public Decimal getDecimal(int row, int precision, int scale) {
    return all.getDecimal(first + row, precision, scale);
  }

  public UTF8String getUTF8String(int row) {
    return all.getUTF8String(first + row);
  }

  public byte[] getBinary(int row) {
    return all.getBinary(first + row);
  }

  /** The fields of a struct have as many rows as it has; the elements of an array or map have places of their own. */
  public ColumnVector getChild(int ordinal) {
    ColumnVector child = all.getChild(ordinal);
    if (type instanceof ArrayType || type instanceof MapType) {
      return child;
    }
    return new LaterRows(child, first);
  }
}
