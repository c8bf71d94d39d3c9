"""``bristlecone datasets``."""

from __future__ import annotations

import argparse

from bristlecone.datasets import describe, list_datasets


def run(arguments: argparse.Namespace) -> int:
    """List the bundled data sets, or describe one."""
    if arguments.name is not None:
        info = describe(arguments.name)
        print(f"{info.name}: {info.title}\n{info.rows} rows, {info.events} events")
        print(f"event: {info.event}\ntime: {info.time}\n\ncolumns:")
        width = max(map(len, info.columns))
        for name, meaning in info.columns.items():
            print(f"  {name:{width}}  {meaning}")
        print(f"\nsource: {info.source}\nlicence: {info.licence}")
        print(f"changes: {info.changes}\ncitation: {info.citation}")
        return 0
    infos = [describe(name) for name in list_datasets()]
    width = max(len(info.name) for info in infos)
    print(f"{'name':{width}}  rows  events  columns  title")
    for info in infos:
        print(
            f"{info.name:{width}}  {info.rows:4}  {info.events:6}  {len(info.columns):7}  "
            f"{info.title}"
        )
    return 0
