"""Studies: a frozen config, `run(config)` to a table, `draw(table)` to a picture."""
