"""What is installed as users do it, from the files of a release."""
