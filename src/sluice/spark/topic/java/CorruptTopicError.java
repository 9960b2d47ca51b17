package sluice.topic;

/** A segment is torn, altered or missing; named as Python's, so that a query fails the same way whoever finds it. */
public final class CorruptTopicError extends RuntimeException {
  CorruptTopicError(String message) {
    super(message);
  }
}
