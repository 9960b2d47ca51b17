package sluice.placed;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.ExecutorCacheTaskLocation;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.classic.StreamingQueryManager;
import org.apache.spark.sql.execution.streaming.state.StateStoreCoordinatorRef;
import org.apache.spark.sql.execution.streaming.state.StateStoreId;
import org.apache.spark.sql.execution.streaming.state.StateStoreProviderId;

/**
 * Where the state partitions of one run of a query are to be, batch by batch: the coordinator of state stores hears it
 * when a batch begins, and again when an executor is lost in the middle of one.
 *
 * The next task of a partition then prefers that executor, which loads the state from the checkpoint.
 */
final class StatePlan {
  private static final int KEPT_RUNS = 100;
  private static final int KEPT_BATCHES = 20;
  private static final Map runs = new LinkedHashMap();

  private final UUID run;
  private final TreeMap batches = new TreeMap();
  private String[] workers;
  private String root;
  private JsonNode stores;
  private StateStoreCoordinatorRef coordinator;

  private StatePlan(String run) {
    this.run = UUID.fromString(run);
  }

  static synchronized void begin(String run, long batch, JsonNode state, String[] workers) {
    StatePlan plan = (StatePlan) runs.get(run);
    if (plan == null) {
      plan = new StatePlan(run);
      runs.put(run, plan);
      dropOldest(runs.keySet().iterator(), runs.size() - KEPT_RUNS);
    }
    plan.coordinator = ((StreamingQueryManager) SparkSession.active().streams()).stateStoreCoordinator();
    plan.workers = workers;
    plan.stores = (JsonNode) state.get("stores");
    plan.root = qualified(((JsonNode) state.get("folder")).asText());
    plan.report(batch, PlanFile.texts((JsonNode) state.get("places")));
    dropOldest(plan.batches.keySet().iterator(), plan.batches.size() - KEPT_BATCHES);
  }

  /** Partition -> executor as planned for that batch; null if nothing was. Batches without records plan nothing new. */
  static synchronized Map executors(String run, long batch) {
    StatePlan plan = (StatePlan) runs.get(run);
    Map.Entry entry = plan == null ? null : plan.batches.floorEntry(Long.valueOf(batch));
    if (entry == null) {
      return null;
    }
    String[] places = (String[]) entry.getValue();
    Map found = new HashMap();
    for (int i = 0; i < places.length; i++) {
      found.put(Integer.valueOf(i), Living.at(places[i]).executorId());
    }
    return found;
  }

  /** State tasks of the batches in flight that have not begun yet go elsewhere. */
  static synchronized void lost(String executor) {
    Iterator plans = runs.values().iterator();
    while (plans.hasNext()) {
      StatePlan plan = (StatePlan) plans.next();
      Map.Entry newest = plan.batches.lastEntry();
      String[] places = newest == null ? new String[0] : (String[]) newest.getValue();
      for (int i = 0; i < places.length; i++) {
        if (Living.at(places[i]).executorId().equals(executor)) {
          plan.report(((Long) newest.getKey()).longValue(), places);
          break;
        }
      }
    }
  }

  private void report(long batch, String[] planned) {
    String[] places = Living.instead(planned, workers);
    Iterator operators = stores.fieldNames();
    while (operators.hasNext()) {
      String operator = (String) operators.next();
      String[] names = PlanFile.texts((JsonNode) stores.get(operator));
      for (int partition = 0; partition < places.length; partition++) {
        ExecutorCacheTaskLocation place = Living.at(places[partition]);
        for (int i = 0; i < names.length; i++) {
          StateStoreId store = new StateStoreId(root, Long.parseLong(operator), partition, names[i]);
          coordinator.reportActiveInstance(
              new StateStoreProviderId(store, run),
              place.host(),
              place.executorId(),
              (scala.collection.immutable.Seq) scala.collection.immutable.Nil$.MODULE$);
        }
      }
    }
    batches.put(Long.valueOf(batch), places);
  }

  /** As Spark names the folder in the ids of its stores. */
  private static String qualified(String folder) {
    Path path = new Path(folder);
    try {
      return path.getFileSystem(SparkContext.getOrCreate().hadoopConfiguration()).makeQualified(path).toString();
    } catch (IOException error) {
      throw new IllegalStateException("no file system for " + folder, error);
    }
  }

  private static void dropOldest(Iterator keys, int surplus) {
    for (int i = 0; i < surplus; i++) {
      keys.next();
      keys.remove();
    }
  }
}
