package sluice.placed;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.LinkedHashSet;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Any streaming source of Spark's second interface, with a place for each of its partitions.
 *
 * Options: "placed.format" names the source, "placed.plan" the file of places; all options are handed on to it.
 * Compiled by Janino, which knows neither lambdas nor inferred type arguments and needs casts where a return type is
 * narrowed.
 */
public class PlacedSource implements TableProvider {
  private TableProvider inner;

  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return inner(options).inferSchema(options);
  }

  public Transform[] inferPartitioning(CaseInsensitiveStringMap options) {
    return inner(options).inferPartitioning(options);
  }

  public boolean supportsExternalMetadata() {
    return true;
  }

  public Table getTable(StructType schema, Transform[] partitioning, Map properties) {
    CaseInsensitiveStringMap options = new CaseInsensitiveStringMap(properties);
    Table table = inner(options).getTable(schema, partitioning, properties);
    return (Table) around(table, new PlanFile(required(options, "placed.plan")));
  }

  private synchronized TableProvider inner(CaseInsensitiveStringMap options) {
    if (inner == null) {
      String name = required(options, "placed.format");
      scala.Option found = DataSource.lookupDataSourceV2(name, SQLConf.get());
      if (found.isEmpty()) {
        throw new IllegalArgumentException("no streaming source of the second interface: " + name);
      }
      inner = (TableProvider) found.get();
    }
    return inner;
  }

  private static String required(CaseInsensitiveStringMap options, String name) {
    String value = options.get(name);
    if (value == null) {
      throw new IllegalArgumentException("option " + name + " is missing");
    }
    return value;
  }

  /** With all public interfaces of the target, so that Spark finds its optional abilities. */
  static Object around(Object target, PlanFile plan) {
    LinkedHashSet interfaces = new LinkedHashSet();
    for (Class type = target.getClass(); type != null; type = type.getSuperclass()) {
      Class[] declared = type.getInterfaces();
      for (int i = 0; i < declared.length; i++) {
        if (Modifier.isPublic(declared[i].getModifiers())) {
          interfaces.add(declared[i]);
        }
      }
    }
    Class[] all = (Class[]) interfaces.toArray(new Class[interfaces.size()]);
    return Proxy.newProxyInstance(PlacedSource.class.getClassLoader(), all, new Handler(target, plan));
  }

  /** Follows table, scan builder and scan down to the stream. */
  static final class Handler implements InvocationHandler {
    private final Object target;
    private final PlanFile plan;

    Handler(Object target, PlanFile plan) {
      this.target = target;
      this.plan = plan;
    }

    public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
      if (method.getName().equals("equals") && arguments != null && arguments.length == 1) {
        return Boolean.valueOf(target.equals(bare(arguments[0])));
      }
      Object result;
      try {
        result = method.invoke(target, arguments);
      } catch (InvocationTargetException error) {
        throw error.getCause();
      }
      if (result == target) {
        return proxy;
      }
      if (result instanceof MicroBatchStream) {
        return PlacedStream.around((MicroBatchStream) result, plan);
      }
      return result instanceof ScanBuilder || result instanceof Scan ? around(result, plan) : result;
    }

    private static Object bare(Object other) {
      if (other != null && Proxy.isProxyClass(other.getClass())) {
        InvocationHandler handler = Proxy.getInvocationHandler(other);
        if (handler instanceof Handler) {
          return ((Handler) handler).target;
        }
      }
      return other;
    }
  }
}
