"""Pure folds from records to load, shared by Spark, replay and the simulator."""
