"""The log of a namespace as routines over five operations, to be run against a store or stepped by a test."""
