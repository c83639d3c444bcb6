"""Runs inside somebody's training job: records what every rank did. Imports torch and jax only when they are used."""
