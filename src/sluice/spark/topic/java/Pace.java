package sluice.topic;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.InterruptedIOException;

/**
 * A slot of a given speed, as Python's `paced` has it: every portion is handed on when the slot would have finished it.
 *
 * The clock starts with the task: time lost elsewhere in the task is made up for, so the rate holds on a busy machine.
 */
final class Pace {
  private static final double STEP_S = 0.25;

  private final double rate;
  private final long startedNs;
  private long done = 0;

  Pace(JsonNode rate, double headStartS) {
    this.rate = rate == null || rate.isNull() ? Double.POSITIVE_INFINITY : rate.asDouble();
    this.startedNs = System.nanoTime() - (long) (headStartS * 1e9);
  }

  /** Records that leave together: a quarter of a second's, at most so many. */
  int portion(int most) {
    return (int) Math.max(1.0, Math.min((double) most, Math.rint(rate * STEP_S)));
  }

  void await(int records) throws InterruptedIOException {
    done += records;
    long leftNs = startedNs + (long) (done / rate * 1e9) - System.nanoTime();
    if (rate == Double.POSITIVE_INFINITY || leftNs <= 0) {
      return;
    }
    try {
      Thread.sleep(leftNs / 1000000, (int) (leftNs % 1000000));
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("the task was ended while its slot was paced");
    }
  }
}
