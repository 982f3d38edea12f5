"""Prints the type, the name, the labels and the value of each sample, by both of Prometheus's formats."""

import sys
from prometheus_client.openmetrics import parser as new
from prometheus_client import parser as old
text = sys.stdin.read()
for parser in new, old:
    for family in parser.text_string_to_metric_families(text):
        for sample in family.samples:
            print(family.type, sample.name, sorted(sample.labels.items()), float(sample.value))
