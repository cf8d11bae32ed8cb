-- +goose Up
CREATE TABLE IF NOT EXISTS hook_pause (
  hook_phid  VARBINARY(64)  NOT NULL,
  paused_at  DATETIME(3)    NOT NULL,
  paused_by  VARCHAR(128)   NOT NULL,
  reason     VARCHAR(1024)  NOT NULL,
  PRIMARY KEY (hook_phid)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS hook_owner (
  hook_phid        VARBINARY(64)    NOT NULL,
  instance         VARCHAR(128)     NOT NULL,
  task_queue       VARCHAR(200)     NOT NULL,
  lock_connection  BIGINT UNSIGNED  NOT NULL,
  acquired_at      DATETIME(3)      NOT NULL,
  released_at      DATETIME(3)      NULL,
  PRIMARY KEY (hook_phid)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS hook_owner;
DROP TABLE IF EXISTS hook_pause;
