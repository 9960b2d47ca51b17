package sluice.placed;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.ExecutorCacheTaskLocation;
import org.apache.spark.scheduler.SchedulerBackend;
import org.apache.spark.scheduler.TaskLocation$;
import org.apache.spark.scheduler.cluster.CoarseGrainedSchedulerBackend;

/** Executors that are there, as the scheduler itself knows it. */
final class Living {
  private Living() {}

  /** The places, those of executors that are gone dealt out to workers that live, until there is a new plan. */
  static String[] instead(String[] places, String[] workers) {
    SchedulerBackend backend = SparkContext.getOrCreate().schedulerBackend();
    if (!(backend instanceof CoarseGrainedSchedulerBackend)) {
      return places;
    }
    CoarseGrainedSchedulerBackend executors = (CoarseGrainedSchedulerBackend) backend;
    List living = new ArrayList();
    for (int i = 0; i < workers.length; i++) {
      if (executors.isExecutorActive(at(workers[i]).executorId())) {
        living.add(workers[i]);
      }
    }
    String[] found = (String[]) places.clone();
    for (int i = 0; i < places.length && !living.isEmpty(); i++) {
      if (!living.contains(places[i])) {
        found[i] = (String) living.get(i % living.size());
      }
    }
    return found;
  }

  static ExecutorCacheTaskLocation at(String place) {
    return (ExecutorCacheTaskLocation) TaskLocation$.MODULE$.apply(place);
  }
}
