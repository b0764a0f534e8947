r"""Java's regular expressions, of Pulsar's isolation policies, in linear time.

Pulsar uses ``String.matches``: an expression matches the whole of a name.  Policies come from the log, and one that
backtracks, or counts to 255 five times over, could hold a controller for ever.  So they are read by the rules of Java's
dialect (``parser``), written in that of RE2 (``translation``), and matched by it (``expression``): its time grows with
the length of a text, and its memory has a limit.

**What is read means what it means in Java**, for names: texts of printable ASCII.  A name with other characters is only
matched by expressions that are a text, or a text and ``.*``; of others it cannot be told.

**What cannot be read is refused by name**: backreferences, looks around at a place that varies, possessive repetitions
and atomic groups where they make a difference, counts that come to more than 1,000, what versions of Java read
differently, what is too long or nested too deep, and what comes after the first 2,000 expressions.  It is bounded all
the same: by what it would match without what is refused, and at least by the text with which it begins.
"""

from controller.model.java_regex.expressions import MAX_PATTERNS, Expressions, Hit, matches, quoted

__all__ = ["MAX_PATTERNS", "Expressions", "Hit", "matches", "quoted"]
