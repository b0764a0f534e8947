"""Why something was decided, or was not: the decision is made again and listened to."""
