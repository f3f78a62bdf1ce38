"""Care for the files of a hive: doctor, indexes, statistics. Commands load a module of it each."""
