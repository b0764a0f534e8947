"""Pure folds from records to load, used by Spark, replay and the simulator."""
