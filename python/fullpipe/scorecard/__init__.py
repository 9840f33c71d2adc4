"""The scorecard of a congestion control: items that run scenarios and compare the results."""
