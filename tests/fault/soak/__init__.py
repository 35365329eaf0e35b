"""A soak: days of many networks' lives in an hour, and the service's pages held against the truth.

python -m tests.fault.soak --minutes 60 --networks 40 --seed 1 --out build/soak
"""
