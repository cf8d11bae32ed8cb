-- +goose Up
-- MySQL has no ADD COLUMN IF NOT EXISTS, and a step that was cut off is
-- repeated: the column is added only where it is missing.
SET @step = IF((SELECT COUNT(*) FROM information_schema.COLUMNS
                 WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'hook_pause' AND COLUMN_NAME = 'released') = 0,
               'ALTER TABLE hook_pause ADD COLUMN released TINYINT(1) NOT NULL DEFAULT 0', 'DO 0');
PREPARE step FROM @step;
EXECUTE step;
DEALLOCATE PREPARE step;

-- Rows that Phorge failed because its site is silent, each held against the
-- hooks once: after a resume only new ones count.
CREATE TABLE IF NOT EXISTS silence_evidence (
  request_phid  VARBINARY(64)    NOT NULL,
  modified      BIGINT UNSIGNED  NOT NULL,
  seen_at       DATETIME(3)      NOT NULL,
  PRIMARY KEY (request_phid, modified),
  KEY key_seen (seen_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS silence_evidence;
ALTER TABLE hook_pause DROP COLUMN released;
