package sluice.topic;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Which columns of the topic are read; the others, which the query does not depend on, are nulls. */
final class Columns {
  final StructType read;
  private final int[] places;
  private final ColumnVector[] nulls;

  Columns(String schema, JsonNode wanted) {
    StructType all = (StructType) DataType.fromJson(schema);
    StructField[] fields = all.fields();
    Set names = new HashSet();
    if (wanted != null && !wanted.isNull()) {
      for (int i = 0; i < wanted.size(); i++) {
        names.add(((JsonNode) wanted.get(i)).asText());
      }
      if (names.isEmpty()) {
        names.add(fields[0].name());
      }
    }
    StructType chosen = new StructType();
    places = new int[fields.length];
    nulls = new ColumnVector[fields.length];
    for (int i = 0; i < fields.length; i++) {
      if (names.isEmpty() || names.contains(fields[i].name())) {
        places[i] = chosen.fields().length;
        chosen = chosen.add(fields[i]);
      } else {
        ConstantColumnVector missing = new ConstantColumnVector(1, fields[i].dataType());
        missing.setNull();
        nulls[i] = missing;
      }
    }
    read = chosen;
  }

  ColumnarBatch complete(ColumnarBatch batch) {
    if (batch == null || read.fields().length == places.length) {
      return batch;
    }
    ColumnVector[] all = new ColumnVector[places.length];
    for (int i = 0; i < all.length; i++) {
      all[i] = nulls[i] == null ? batch.column(places[i]) : nulls[i];
    }
    return new ColumnarBatch(all, batch.numRows());
  }
}
