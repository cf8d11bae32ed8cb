-- Run once by the database server's image, when its volume is empty. The
-- passwords are those of docker-compose.yml: for demonstrations, nothing else.

-- Waybill's own database, and Waybill. What it may do with the demo Phorge is
-- granted by the demo, as soon as the tables are there.
CREATE DATABASE waybill CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE USER 'waybill'@'%' IDENTIFIED BY 'demo-only-waybill';
GRANT ALL PRIVILEGES ON waybill.* TO 'waybill'@'%';

-- The demo, which plays the Phorge. A real Phorge has a user and tables already.
CREATE USER 'demo'@'%' IDENTIFIED BY 'demo-only-phorge';
GRANT ALL PRIVILEGES ON `demo\_%`.* TO 'demo'@'%' WITH GRANT OPTION;
