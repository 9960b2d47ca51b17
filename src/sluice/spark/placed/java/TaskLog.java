package sluice.placed;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.ExecutorCacheTaskLocation;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.StageInfo;
import org.apache.spark.scheduler.TaskInfo;
import org.apache.spark.storage.RDDInfo;

/** Every finished task of a streaming query: where the scheduler was told to run it, and where it ran. */
public class TaskLog extends SparkListener {
  private static final int MOST_TASKS = 200000;

  private final Map runs = new HashMap();
  private final Map stages = new HashMap();
  private final Set gone = new HashSet();
  private List tasks = new ArrayList();
  private long dropped = 0;

  public synchronized void onJobStart(SparkListenerJobStart event) {
    Properties properties = event.properties();
    String run = properties == null ? null : properties.getProperty("spark.jobGroup.id");
    String batch = properties == null ? null : properties.getProperty("streaming.sql.batchId");
    if (run == null || batch == null) {
      return;
    }
    scala.collection.Iterator infos = event.stageInfos().iterator();
    while (infos.hasNext()) {
      runs.put(Integer.valueOf(((StageInfo) infos.next()).stageId()), new String[] {run, batch});
    }
  }

  public synchronized void onStageSubmitted(SparkListenerStageSubmitted event) {
    StageInfo info = event.stageInfo();
    Object run = runs.get(Integer.valueOf(info.stageId()));
    if (run == null) {
      return;
    }
    String kind = "other";
    scala.collection.Iterator rdds = info.rddInfos().iterator();
    while (rdds.hasNext()) {
      String name = ((RDDInfo) rdds.next()).name();
      if (name.startsWith("StateStore")) {
        kind = "state";
      } else if (name.startsWith("DataSourceRDD") && kind.equals("other")) {
        kind = "source";
      }
    }
    stages.put(key(info.stageId(), info.attemptNumber()), new Stage((String[]) run, kind, planned(info, kind)));
  }

  /** State tasks have the plan of their batch; those that read have what the source gave the scheduler. */
  private Map planned(StageInfo info, String kind) {
    String[] run = (String[]) runs.get(Integer.valueOf(info.stageId()));
    Map ofState = kind.equals("state") ? StatePlan.executors(run[0], Long.parseLong(run[1])) : null;
    if (ofState != null) {
      return ofState;
    }
    Stage first = (Stage) stages.get(key(info.stageId(), 0));
    return info.attemptNumber() == 0 || first == null ? places(info) : first.places;
  }

  public synchronized void onStageCompleted(SparkListenerStageCompleted event) {
    StageInfo info = event.stageInfo();
    runs.remove(Integer.valueOf(info.stageId()));
    Stage stage = (Stage) stages.get(key(info.stageId(), info.attemptNumber()));
    if (stage != null && stage.seen >= info.numTasks()) {
      for (int attempt = info.attemptNumber(); attempt >= 0; attempt--) {
        stages.remove(key(info.stageId(), attempt));
      }
    }
  }

  public synchronized void onExecutorRemoved(SparkListenerExecutorRemoved event) {
    gone.add(event.executorId());
    StatePlan.lost(event.executorId());
  }

  public synchronized void onTaskEnd(SparkListenerTaskEnd event) {
    Stage stage = (Stage) stages.get(key(event.stageId(), event.stageAttemptId()));
    TaskInfo info = event.taskInfo();
    if (stage == null || info == null) {
      return;
    }
    stage.seen++;
    if (!info.successful()) {
      return;
    }
    if (tasks.size() >= MOST_TASKS) {
      dropped++;
      return;
    }
    Map task = new LinkedHashMap();
    task.put("run_id", stage.run[0]);
    task.put("batch_id", Long.valueOf(stage.run[1]));
    task.put("stage", Integer.valueOf(event.stageId()));
    task.put("kind", stage.kind);
    task.put("partition", Integer.valueOf(info.partitionId()));
    task.put("planned", stage.places.get(Integer.valueOf(info.partitionId())));
    task.put("executor", info.executorId());
    TaskMetrics metrics = event.taskMetrics();
    if (metrics != null) {
      task.put("run_ms", Long.valueOf(metrics.executorRunTime()));
      task.put("cpu_ns", Long.valueOf(metrics.executorCpuTime()));
      task.put("remote_bytes", Long.valueOf(metrics.shuffleReadMetrics().remoteBytesRead()));
      task.put("read_records", Long.valueOf(metrics.inputMetrics().recordsRead()));
      task.put("written_bytes", Long.valueOf(metrics.outputMetrics().bytesWritten()));
    }
    tasks.add(task);
  }

  /** {"tasks": [...], "dropped": n} since the last call, and "gone", all executors that are no more. */
  public String drain() throws JsonProcessingException {
    Map all = new LinkedHashMap();
    synchronized (this) {
      all.put("tasks", tasks);
      all.put("dropped", Long.valueOf(dropped));
      all.put("gone", new ArrayList(gone));
      tasks = new ArrayList();
      dropped = 0;
    }
    return new ObjectMapper().writeValueAsString(all);
  }

  private static String key(int stage, int attempt) {
    return stage + "." + attempt;
  }

  /**
   * Partition -> the executor the scheduler was told. The scheduler (DAGScheduler.submitMissingTasks) hands the places on
   * as the values of an immutable map from partitions, in that map's own order; a map with the same keys has the same
   * order.
   */
  private static Map places(StageInfo info) {
    int count = info.taskLocalityPreferences().size();
    scala.collection.immutable.Map order = scala.collection.immutable.Map$.MODULE$.empty();
    for (int i = 0; i < count; i++) {
      order = (scala.collection.immutable.Map) order.updated(Integer.valueOf(i), "");
    }
    Map places = new HashMap();
    scala.collection.Iterator partitions = order.keysIterator();
    scala.collection.Iterator preferences = info.taskLocalityPreferences().iterator();
    while (preferences.hasNext()) {
      Object partition = partitions.next();
      scala.collection.Iterator found = ((scala.collection.Iterable) preferences.next()).iterator();
      if (found.hasNext()) {
        Object place = found.next();
        if (place instanceof ExecutorCacheTaskLocation) {
          places.put(partition, ((ExecutorCacheTaskLocation) place).executorId());
        }
      }
    }
    return places;
  }

  static final class Stage {
    final String[] run;
    final String kind;
    final Map places;
    int seen = 0;

    Stage(String[] run, String kind, Map places) {
      this.run = run;
      this.kind = kind;
      this.places = places;
    }
  }
}
