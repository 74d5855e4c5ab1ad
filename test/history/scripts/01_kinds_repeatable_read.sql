\set kind random(1, 14)
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT check_kind(:kind);
\sleep 3 ms
SELECT check_kind(:kind);
INSERT INTO h (x, y, z) SELECT random(), random(), i FROM generate_series(1, 3) i;
SELECT check_kind(:kind);
COMMIT;
SELECT check_kind(:kind);
SELECT kind_warm(:kind);
SELECT check_kind(:kind);
