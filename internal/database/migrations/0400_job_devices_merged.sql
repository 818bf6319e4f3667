-- The asset that has the device of a job's asset after merges: it gets the job's command once.

-- +goose Up
ALTER TABLE job_devices ADD COLUMN merged_into TEXT NOT NULL DEFAULT ''; -- empty: none has it
