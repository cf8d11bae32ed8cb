-- +goose Up
SET @step = IF((SELECT COUNT(*) FROM information_schema.COLUMNS
                 WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'hook_owner' AND COLUMN_NAME = 'waits_until') = 0,
               'ALTER TABLE hook_owner ADD COLUMN waits_until DATETIME(3) NULL', 'DO 0');
PREPARE step FROM @step;
EXECUTE step;
DEALLOCATE PREPARE step;

-- +goose Down
ALTER TABLE hook_owner DROP COLUMN waits_until;
