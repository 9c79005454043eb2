"""Which GPU computed wrong? The part that a training image installs."""
