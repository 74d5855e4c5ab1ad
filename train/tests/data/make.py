"""Writes the made-up table of the tests: python3 make.py > heights.csv."""
import random

r = random.Random(4)
print("day,site,kind,depth,salt,level")
for i in range(160):
    site, kind = r.choice(["north", "south"]), r.choice(["a", "b", "c"])
    depth, salt = r.uniform(0, 9), r.gauss(35, 2)
    level = (2.0 * depth + {"a": 0, "b": 4, "c": -3}[kind] + (1.5 if site == "north" else 0)
             + r.gauss(0, 0.5))
    print(f"2024-03-{1 + i // 24:02d}T{i % 24:02d}:00:00,{site},{kind},{depth:.3f},"
          f"{'' if r.random() < 0.1 else f'{salt:.2f}'},"
          f"{'NA' if i % 40 == 7 else f'{level:.3f}'}")
