-- pg_posterior 1.0: complain if this script is sourced in psql rather than by CREATE EXTENSION
\echo Use "CREATE EXTENSION pg_posterior" to load this file. \quit

-- ---- distribution: type, input and output, accessors ------------------------------------------------------------

-- (section of src/pg/distribution*.c)

-- ---- models ----------------------------------------------------------------------------------------------------

-- ---- context: type and aggregate ---------------------------------------------------------------------------------

-- ---- predict, sample, log_density, log_evidence, regress ----------------------------------------------------------
