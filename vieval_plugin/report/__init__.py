"""Tables from results: `vieval report`."""
