"""Training by self-play: actors -> replay -> learner -> checkpoint -> evaluation."""
