VACUUM FULL h;
SELECT check_causal('causal');
ALTER TABLE h ALTER COLUMN label TYPE varchar(10);
ALTER TABLE h ALTER COLUMN label TYPE text;
SELECT check_causal('causal');
