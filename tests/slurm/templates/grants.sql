CREATE DATABASE IF NOT EXISTS slurm_accounting;
CREATE USER IF NOT EXISTS 'slurm'@'127.0.0.1';
SET PASSWORD FOR 'slurm'@'127.0.0.1' = PASSWORD('{password}');
GRANT ALL ON slurm_accounting.* TO 'slurm'@'127.0.0.1';
