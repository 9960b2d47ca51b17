package sluice.topic;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.function.Function;

/** The planner of all streams: a function of the driver's Python process, JSON in and out. */
public final class Planner {
  static final ObjectMapper JSON = new ObjectMapper();
  private static volatile Function function = null;

  private Planner() {}

  public static void use(Function planner) {
    function = planner;
  }

  static JsonNode ask(ObjectNode request) {
    if (function == null) {
      throw new IllegalStateException("topics are read by streams that Python has started, this JVM has no planner");
    }
    JsonNode reply;
    try {
      reply = JSON.readTree((String) function.apply(JSON.writeValueAsString(request)));
    } catch (IOException error) {
      throw new PlanningException("reply not understood: " + error.getMessage());
    }
    if (reply.has("error")) {
      throw new PlanningException(((JsonNode) reply.get("error")).asText());
    }
    return (JsonNode) reply.get("answer");
  }

  /** Its message is the traceback of what Python raised. */
  public static final class PlanningException extends RuntimeException {
    PlanningException(String message) {
      super(message);
    }
  }
}
