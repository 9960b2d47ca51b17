package sluice.placed;

import org.apache.spark.sql.connector.read.InputPartition;

/** Known to the driver only: what goes to a task is the partition of the source itself. */
public final class PlacedPartition implements InputPartition {
  final InputPartition inner;
  private final String place;

  PlacedPartition(InputPartition inner, String place) {
    this.inner = inner;
    this.place = place;
  }

  public String[] preferredLocations() {
    return new String[] {place};
  }

  public Object writeReplace() {
    return inner;
  }
}
