-- +goose Up
CREATE TABLE IF NOT EXISTS worker_session (
  instance    VARCHAR(128)  NOT NULL,
  alive_lock  VARCHAR(64)   NOT NULL,
  feeds       BOOLEAN       NOT NULL,
  since       DATETIME(3)   NOT NULL,
  PRIMARY KEY (instance)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS installation (
  one  TINYINT      NOT NULL,
  id   VARCHAR(32)  NOT NULL,
  PRIMARY KEY (one)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS installation;
DROP TABLE IF EXISTS worker_session;
