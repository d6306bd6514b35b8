"""A model server: every reload of the model registers a workspace again and drops the last reference to the old one,
which nothing gives back."""
import cuda

RELOADS, LAYERS = 40, 6


class Model:
    def __init__(self):
        self.layers = [cuda.allocate(8 * cuda.MIB) for _ in range(LAYERS)]

    def close(self):
        while self.layers:
            cuda.release(self.layers.pop())


class Server:
    def reload(self):
        self.model = Model()
        self.workspace = self.register_workspace()

    def register_workspace(self):
        return cuda.allocate(3 * cuda.MIB)


cuda.init()
server = Server()
for _ in range(RELOADS):
    server.reload()
    server.model.close()
