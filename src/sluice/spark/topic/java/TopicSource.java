package sluice.topic;

import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * An embedded topic as a source and sink of Spark's second interface. Python plans and commits (see Planner); tasks read
 * and write Parquet.
 *
 * Options to read: "path", "name", "consumer" and "control" as Python's TopicReader takes them, "schema" the topic's as Spark's
 * JSON. To write: "path", "producer", and for a batch of its own its "batch".
 * Compiled by Janino, which knows neither lambdas nor inferred type arguments nor static methods of interfaces, and
 * needs casts where a return type is narrowed.
 */
public class TopicSource implements TableProvider {
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return (StructType) DataType.fromJson(options.get("schema"));
  }

  public boolean supportsExternalMetadata() {
    return true;
  }

  public Table getTable(StructType schema, Transform[] partitioning, Map properties) {
    return new TopicTable(schema, new CaseInsensitiveStringMap(properties));
  }
}
