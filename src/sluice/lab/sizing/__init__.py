"""What instance sizes are worth: sampling them, modelling them, and a day of planning with them."""
